/** A document as it was given beside the one that came of it, in lines of YAML. */

export interface Line {
  /** `+`: filled in or changed; `-`: given otherwise, or replaced by other fields. */
  mark: ' ' | '+' | '-';
  text: string;
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;

/** Lines of one field and of those within it. Lists and texts are written as JSON, which YAML includes. */
function linesOf(name: string, value: unknown, mark: Line['mark'], indent: string): Line[] {
  if (!isFields(value)) return [{ mark, text: `${indent}${name}: ${JSON.stringify(value)}` }];
  return [{ mark, text: `${indent}${name}:` }, ...documentLines(value, mark, `${indent}  `)];
}

export const documentLines = (document: Fields, mark: Line['mark'] = ' ', indent = ''): Line[] =>
  Object.entries(document).flatMap(([name, value]) => linesOf(name, value, mark, indent));

/** Returns the lines of the resolved document, in its order, with those of the given one that it does not have. */
export function diffLines(given: Fields, resolved: Fields, indent = ''): Line[] {
  const names = new Set([...Object.keys(resolved), ...Object.keys(given)]);
  return [...names].flatMap((name) => {
    const [before, after] = [given[name], resolved[name]];
    if (isFields(before) && isFields(after))
      return [{ mark: ' ' as const, text: `${indent}${name}:` }, ...diffLines(before, after, `${indent}  `)];
    if (JSON.stringify(before) === JSON.stringify(after)) return linesOf(name, after, ' ', indent);
    return [
      ...(before === undefined ? [] : linesOf(name, before, '-', indent)),
      ...(after === undefined ? [] : linesOf(name, after, '+', indent)),
    ];
  });
}
