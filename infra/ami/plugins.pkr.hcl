# Packer 1.7 and later gets its plugins from here (`packer init`); earlier ones have them inside, and don't read this
# block.
packer {
  required_plugins {
    amazon = {
      source  = "github.com/hashicorp/amazon"
      version = "~> 1.3"
    }
  }
}
