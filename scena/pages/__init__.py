"""The layout that all pages of Scena share: one stylesheet, one small script, and the parts that a page is made of."""
