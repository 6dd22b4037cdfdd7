import type { ResolvedJobSpec } from '../../../contracts/index.js';
import type { InitSource } from './source.js';

type Base = NonNullable<ResolvedJobSpec['model']['base']>;

/**
 * Returns the source of the frozen base under adapters. The source is the job's initial weights, or the base of an
 * initial checkpoint or model that has adapters itself. So no base has another base below it.
 */
export function resolveBase(
  { train: { adapter, seed } }: { train: Pick<ResolvedJobSpec['train'], 'adapter' | 'seed'> },
  source: InitSource | null,
): { base?: Base } {
  if (adapter === undefined) return {};
  if (source === null) return { base: { seed } };
  if ('model' in source) return { base: { model: source.model.base ?? source.model.id } };
  if (source.spec.model.base !== undefined) return { base: source.spec.model.base };
  const { id, job_id, prefix } = source.checkpoint;
  return { base: { checkpoint: id, job: job_id, prefix } };
}
