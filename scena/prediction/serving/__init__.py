"""An HTTP service around a predictor: requests that arrive together are predicted together."""
