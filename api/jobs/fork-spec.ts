import { type Checkpoint, mergePatch, type ResolvedJobSpec } from '../../contracts/index.js';

/**
 * The document of a fork: that of the job which made the checkpoint, changed by a JSON merge patch (RFC 7396), going on from the
 * checkpoint. It is checked like any other document.
 */
export function forkDocument(spec: ResolvedJobSpec, checkpoint: Checkpoint, overrides: object): unknown {
  const { preset, config } = spec.model;
  // A job without a name has an empty one, which nobody can send.
  const given = withoutNulls({ ...spec, name: spec.name || null });
  const changed = mergePatch(given, overrides);
  const model = {
    ...(preset === null ? { config } : { preset }),
    init_from: { checkpoint: checkpoint.id, restore: 'continue' },
  };
  return isObject(changed) ? { ...changed, model } : changed;
}

/** Null stands for what is not there in a resolved document; in one that is sent the field is absent. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const present = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(present.map(([name, member]) => [name, withoutNulls(member)]));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
