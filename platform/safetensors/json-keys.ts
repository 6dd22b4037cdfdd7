/**
 * `JSON.parse` keeps the last of two equal keys without a word, and other readers keep the first: a document that has a key
 * twice means two things. This finds such a key.
 */

const QUOTE = '"';

/**
 * The path of the first key that an object of the text has twice, or null.
 * @param text valid JSON
 */
export function repeatedKey(text: string): string[] | null {
  /** One set of keys for each object that is open; null for an array. */
  const open: (Set<string> | null)[] = [];
  /** The key that each open object or array is the value of. */
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

/** Where the string that begins at `at` is over: the place after its closing quote. */
function stringEnd(text: string, at: number): number {
  let end = at + 1;
  while (text[end] !== QUOTE) end += text[end] === '\\' ? 2 : 1;
  return end + 1;
}

/** Whether a colon follows: in JSON that makes a string a key. */
function isKey(text: string, at: number): boolean {
  let next = at;
  while (' \t\r\n'.includes(text[next] as string)) next++;
  return text[next] === ':';
}
