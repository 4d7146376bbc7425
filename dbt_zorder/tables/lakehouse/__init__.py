"""Write clustered rows into tables of formats with a log of their own, without files of ours beside them."""
