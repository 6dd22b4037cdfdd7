/**
 * Manifests of the first version, which knew AdamW without a loss scaler and no frozen parameters. They stay readable: a job
 * that was paused then goes on now.
 */

/** What differed. Everything else is checked when it has become a manifest of today. */
interface ManifestV1 {
  format_version: 1;
  params: Record<string, unknown>[];
  lr_schedule: Record<string, unknown>;
  /** Micro-batches of a step: each was a lane of its own. */
  lanes: unknown;
}

export function isManifestV1(value: unknown): value is ManifestV1 {
  const { format_version, params, lr_schedule } = (value ?? {}) as Partial<ManifestV1>;
  return format_version === 1 && Array.isArray(params) && typeof lr_schedule === 'object';
}

/** The same in the words of today's version; nothing that was wrong becomes right by it. */
export function upgradeManifest(manifest: ManifestV1): Record<string, unknown> {
  return {
    ...manifest,
    format_version: 3,
    optimizer: 'adamw',
    params: manifest.params.map((param) => ({ ...param, frozen: false })),
    lr_schedule: {
      ...manifest.lr_schedule,
      warmup_type: 'linear',
      warmup_start_lr: 0,
      decay_steps: null,
    },
    lr_override: null,
    loss_scale_override: null,
    loss_scaler: {
      type: 'none',
      scale: 1,
      iteration: 0,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    },
    leaves: manifest.lanes,
  };
}
