"""Finding plugins and what they register; the option syntax that names them."""
