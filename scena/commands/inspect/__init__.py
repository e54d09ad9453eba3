"""Commands that show or write something without training: params, sets, schema, zoo, devices, new."""
