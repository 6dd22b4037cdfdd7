import { resolveSpec } from '../../contracts/index.js';
import type { StartMessage } from '../../contracts/rank-protocol.js';

/** A resolved spec of a tiny job; `steps` and what else a test cares about is given. */
export function testSpec(
  overrides: {
    steps?: number;
    every_steps?: number;
    keep_last?: number;
    ranks?: number;
    max_errors?: number;
    dataset?: string;
  } = {},
) {
  const { spec } = resolveSpec(
    {
      model: { preset: 'llama-tiny' },
      data: { dataset: overrides.dataset ?? 'ds_01J00000000000000000000000' },
      train: { steps: overrides.steps ?? 20, sequence_length: 16 },
      resources: { ranks: { min: 1, preferred: overrides.ranks ?? 1, max: 4 } },
      checkpoint: { every_steps: overrides.every_steps ?? 5, keep_last: overrides.keep_last ?? 3 },
      retry: { max_errors: overrides.max_errors ?? 3 },
    },
    null,
  );
  return spec;
}

export function startMessage(overrides: Partial<StartMessage> = {}): StartMessage {
  const retry = { attempts: 3, first_delay_ms: 10, max_delay_ms: 50 };
  return {
    kind: 'start',
    job_id: 'job_01J00000000000000000000000',
    epoch: 1,
    nonce: '00000000',
    rank: 0,
    world_size: 1,
    threads: 1,
    spec: testSpec(),
    token_file: '',
    object_store: { url: '', s3_endpoint: null },
    resume_from: null,
    comm: { bind_address: '127.0.0.1', timeout_ms: 5000 },
    heartbeat_ms: 50,
    save: { periodic: retry, final: retry },
    ...overrides,
  };
}
