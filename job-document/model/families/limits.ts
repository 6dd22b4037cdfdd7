/** Bounds of sizes in every family. */
export const LIMITS = {
  hidden: { min: 2, max: 16_384 },
  inner: { min: 1, max: 65_536 },
  layers: { min: 1, max: 256 },
  heads: { min: 1, max: 256 },
  headDim: { min: 2, max: 1024 },
  vocab: { min: 2, max: 1_048_576 },
  positions: { min: 8, max: 1_048_576 },
  window: { min: 1, max: 1_048_576 },
  experts: { min: 1, max: 256 },
  eps: { above: 0, below: 1 },
  factor: { min: 1e-5, max: 1e5 },
  deviation: { above: 0, max: 1 },
  dropout: { min: 0, below: 1 },
  lossCoefficient: { min: 0, max: 1000 },
} as const;
