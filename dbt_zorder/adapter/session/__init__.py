"""Opens the Spark session, in this process or over Spark Connect."""
