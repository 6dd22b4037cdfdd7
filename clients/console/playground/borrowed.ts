/**
 * Returns the template that each model borrows from another one; undefined for a model that has its own, and for all if
 * none has one.
 */
export function borrowed(templates: readonly (string | null)[]): (string | undefined)[] {
  const lent = templates.find((template) => template !== null) ?? undefined;
  return templates.map((template) => (template === null ? lent : undefined));
}
