"""Version of zerofleet. Generated from package.json by `npm run generate`."""

__version__ = "0.1.0"
