"""`scena lav --report`: one page that shows how good a model is, and where it fails."""
