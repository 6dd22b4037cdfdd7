/**
 * Detects duplicate keys. `JSON.parse` silently keeps the last of two equal keys, other readers keep the
 * first, so such a document is ambiguous.
 */

const QUOTE = '"';

/**
 * Returns the path of the first duplicate key, or null.
 * @param text valid JSON
 */
export function repeatedKey(text: string): string[] | null {
  /** Set of keys for each open object; null for an array. */
  const open: (Set<string> | null)[] = [];
  /** Key of each open object or array. */
  const path: string[] = [];
  let key = '';
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '{' || char === '[') {
      open.push(char === '{' ? new Set() : null);
      path.push(key);
    } else if (char === '}' || char === ']') {
      open.pop();
      path.pop();
    } else if (char === QUOTE) {
      const end = stringEnd(text, at);
      const keys = open.at(-1);
      if (keys && isKey(text, end)) {
        key = JSON.parse(text.slice(at, end));
        if (keys.has(key)) return [...path.slice(1), key];
        keys.add(key);
      }
      at = end - 1;
    }
  }
  return null;
}

/** Returns the position after the closing quote of the string at `at`. */
function stringEnd(text: string, at: number): number {
  let end = at + 1;
  while (text[end] !== QUOTE) end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

/** Returns whether a colon follows, which makes a JSON string a key. */
function isKey(text: string, at: number): boolean {
  let next = at;
  while (' \t\r\n'.includes(text[next] as string)) next++;
  return text[next] === ':';
}
