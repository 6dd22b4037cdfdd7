import type { FieldError, JobSpec } from '../../contracts/index.js';
import { isObject } from './key.js';
import { keyError, type Setting } from './settings.js';
import { pointerTo } from './walk.js';

/** Returns the document with the settings, and the origin of each field. */
export function merge(
  own: JobSpec,
  settings: readonly Setting[],
): { spec: JobSpec; errors: FieldError[]; origin(pointer: string): string } {
  const spec = structuredClone(own);
  const origins = new Map<string, string>();
  const errors: FieldError[] = [];
  // Explicit keys take precedence over DeepSpeed's defaults.
  for (const setting of [...settings.filter(({ from }) => from), ...settings.filter(({ from }) => !from)]) {
    const { field, value, from } = setting;
    const present = read(spec, field);
    if (present === undefined) {
      write(spec, field, value);
      if (from !== undefined) origins.set(field, from);
    } else if (from !== undefined && JSON.stringify(present) !== JSON.stringify(value)) {
      errors.push(conflict(setting, present, origins.get(field)));
    }
  }
  const origin = (pointer: string) => {
    // An element of a list has the origin of the list.
    const from = origins.get(pointer) ?? origins.get(pointer.replace(/\/\d+$/, ''));
    return from === undefined ? pointer : pointerTo(from);
  };
  return { spec, errors, origin };
}

function conflict(
  { field, value, from = '' }: Setting,
  present: unknown,
  other: string | undefined,
): FieldError {
  const otherPointer = other === undefined ? field : pointerTo(other);
  return keyError(
    from,
    'deepspeed_conflict',
    `it sets ${field} to ${JSON.stringify(value)}, and ${otherPointer} sets it to ${JSON.stringify(present)}: set it in one place`,
  );
}

function read(document: unknown, pointer: string): unknown {
  let value = document;
  for (const name of pointer.slice(1).split('/')) value = isObject(value) ? value[name] : undefined;
  return value;
}

function write(document: object, pointer: string, value: unknown): void {
  const names = pointer.slice(1).split('/');
  const last = names.pop() ?? '';
  let parent = document as Record<string, unknown>;
  for (const name of names) {
    const inner = isObject(parent[name]) ? parent[name] : {};
    parent[name] = inner;
    parent = inner;
  }
  parent[last] = value;
}
