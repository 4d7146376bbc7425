"""Operations on the versions of one table."""
