# Machines that compute the same bits. A job's ranks run on workers of one numerics fingerprint (docs/exactness.md). The
# autoscaler assumes that all machines of a group are alike. With types that differ, it could start a machine that no
# rank of the job can use.

locals {
  # Paths of the native core, each of which has what those before it have.
  cpu_paths = ["generic", "avx2", "avx512", "avx512bf16"]

  # Best path of the families of x86-64 machines.
  cpu_families = {
    avx2 = ["c4", "c5a", "c5ad", "c6a", "hpc6a", "m4", "m5a", "m5ad", "m6a", "r4", "r5a", "r5ad", "r6a"]
    avx512 = [
      "c5", "c5d", "c5n", "c6i", "c6id", "c6in", "hpc6id", "i3en", "i4i", "m5", "m5d", "m5dn", "m5n", "m5zn", "m6i", "m6id", "m6idn", "m6in",
      "r5", "r5b", "r5d", "r5dn", "r5n", "r6i", "r6id", "r6idn", "r6in", "x2idn", "x2iedn", "x2iezn", "z1d",
    ]
    avx512bf16 = [
      "c7a", "c7i", "c7i-flex", "c8a", "c8i", "c8i-flex", "hpc7a", "i7i", "i7ie", "m7a", "m7i", "m7i-flex", "m8a", "m8i", "m8i-flex", "r7a", "r7i",
      "r7iz", "r8a", "r8i", "r8i-flex", "x8i",
    ]
  }
  cpu_path = merge([for path, families in local.cpu_families : { for family in families : family => path }]...)

  # GPUs of the families for which there is code (sm_80 and later).
  gpu = {
    g5      = "a10g"
    g6      = "l4"
    g6e     = "l40s"
    gr6     = "l4"
    p4d     = "a100-40gb"
    p4de    = "a100-80gb"
    p5      = "h100"
    p5e     = "h200"
    p5en    = "h200"
    p6-b200 = "b200"
  }

  # Older GPUs, those of another maker, and machines that are not x86-64, as the images are.
  gpus_without_code = ["g2", "g3", "g3s", "g4ad", "g4dn", "g5g", "p2", "p3", "p3dn", "p6e-gb200"]
}
