import { mergePatch } from '../../contracts/merge-patch.js';
import type { Checkpoint, ResolvedJobSpec } from '../../contracts/types.js';

/**
 * Document of a fork: the document of the checkpoint's job, changed by a JSON merge patch (RFC 7396) and starting from
 * the checkpoint. It is checked like any other document.
 */
export function forkDocument(spec: ResolvedJobSpec, checkpoint: Checkpoint, overrides: object): unknown {
  // A job without a name has an empty one, which the schema refuses. The server names the sources of the new document.
  const given = withoutNulls({ ...spec, name: spec.name || null, sources: null });
  const changed = mergePatch(given, overrides);
  return isObject(changed)
    ? { ...changed, model: modelFrom(spec.model, checkpoint.id, 'continue') }
    : changed;
}

/** The section `model` of a job that begins with a checkpoint. @param model that of the checkpoint's job */
export function modelFrom(
  { preset, config, quantization }: Pick<ResolvedJobSpec['model'], 'preset' | 'config' | 'quantization'>,
  checkpoint: string,
  restore: 'continue' | 'weights',
) {
  return {
    ...(preset === null ? { config } : { preset }),
    // Training continues only over a base in the same precision.
    ...(restore === 'continue' && quantization !== undefined && { quantization }),
    init_from: { checkpoint, restore },
  };
}

/** Removes nulls: a resolved document has null for absent fields, a sent document omits them. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const present = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(present.map(([name, member]) => [name, withoutNulls(member)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
