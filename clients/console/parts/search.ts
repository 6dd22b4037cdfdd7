/** Returns whether one of the values contains a text; case and outer spaces do not count. */
export function includesText(values: readonly string[], text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return values.some((value) => value.toLowerCase().includes(wanted));
}
