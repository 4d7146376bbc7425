"""The Spark session, opened in this process or over Spark Connect."""
