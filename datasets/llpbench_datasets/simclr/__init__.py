"""SimCLR (Chen, Kornblith, Norouzi & Hinton 2020): features of images learned without any label.

Two random views of an image should be recognised as the same among the views of all other images of a batch.
``augment`` makes views, ``loss`` is NT-Xent, ``encoder`` the networks, ``train`` the loop, ``embed`` the features.
"""
