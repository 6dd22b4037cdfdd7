/** Labels of a run as lines of `name=value`. */
type Labels = Readonly<Record<string, string>>;

export const labelsText = (labels: Labels) =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');

/** A line without a value is a label with an empty one. */
export function labelsIn(text: string): Labels {
  const lines = text.split('\n').map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line !== '')
      .map((line) => {
        const [, name = line, value = ''] = /^([^=]*)=(.*)$/.exec(line) ?? [];
        return [name, value];
      }),
  );
}

/** The merge patch from one set of labels to another one. */
export function labelsPatch(before: Labels, after: Labels): Record<string, string | null> {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return { ...after, ...Object.fromEntries(removed.map((name) => [name, null])) };
}
