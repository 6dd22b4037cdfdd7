import type { JobSpec, ResolvedJobSpec } from '../../contracts/index.js';
import { resolveSpec } from '../resolve-spec.js';

/** Returns a document with a configuration; two ranks stand for two GPUs. */
export function document(deepspeedConfig: Record<string, unknown>, own: Partial<JobSpec> = {}): JobSpec {
  return {
    model: { preset: 'llama-tiny' },
    data: { dataset: `ds_${'0'.repeat(26)}` },
    resources: { ranks: { min: 1, max: 2, preferred: 2 } },
    deepspeed_config: deepspeedConfig,
    ...own,
  };
}

/** Resolves it; throws on errors. */
export function resolved(config: Record<string, unknown>, own?: Partial<JobSpec>): ResolvedJobSpec {
  const { spec, errors } = resolveSpec(document(config, own), null);
  if (errors.length > 0) throw new Error(JSON.stringify(errors, null, 1));
  return spec;
}
