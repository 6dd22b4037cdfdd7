/**
 * Defaults of the job document. They are declared in its schema: `default`, or `x-defaults` by the `type` of the
 * section.
 */
import { DEFAULTS, DEFAULTS_BY_TYPE } from '../../contracts/generated/job-defaults.js';

type Defaults = typeof DEFAULTS;
type TypedSection = keyof typeof DEFAULTS_BY_TYPE;

/** Returns the defaults of a section's fields that depend on no other field, as a new object. */
export function defaultsOf<Section extends keyof Defaults>(section: Section): Defaults[Section] {
  return structuredClone(DEFAULTS[section]);
}

/** Returns all types of a section. */
export function typesOf(section: TypedSection): readonly string[] {
  return Object.keys(DEFAULTS_BY_TYPE[section]);
}

const defaultsOfType = (section: TypedSection, type: string): object => ({
  ...(section in DEFAULTS ? DEFAULTS[section as keyof Defaults] : {}),
  ...(DEFAULTS_BY_TYPE[section] as Record<string, object>)[type],
});

/** Returns the names of all fields that a section of this type has. */
export function fieldsOfType(section: TypedSection, type: string): ReadonlySet<string> {
  return new Set(['type', ...Object.keys(defaultsOfType(section, type))]);
}

/** Returns the fields of the section's type: as given, or else their defaults. Fields of other types are left out. */
export function filledByType<Filled extends { type: string }>(
  section: TypedSection,
  given: Partial<Filled> & Pick<Filled, 'type'>,
): Filled {
  const fields = fieldsOfType(section, given.type);
  const values = { ...structuredClone(defaultsOfType(section, given.type)), ...given };
  return Object.fromEntries(Object.entries(values).filter(([name]) => fields.has(name))) as Filled;
}
