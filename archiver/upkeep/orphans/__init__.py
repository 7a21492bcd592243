"""`archiver orphans`: finding and deleting files that no table refers to and none ever will."""
