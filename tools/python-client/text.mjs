// Names and texts in Python's form.

const WIDTH = 100;
const KEYWORDS = new Set([
  'from',
  'if',
  'in',
  'is',
  'for',
  'class',
  'def',
  'import',
  'global',
  'lambda',
  'not',
  'or',
  'and',
]);

/** True if a field can be written as an attribute. */
export const isName = (text) => /^[A-Za-z_]\w*$/.test(text) && !KEYWORDS.has(text);

/** `If-Match` and `from` as names of parameters: `if_match`, `from_`. */
export function parameterName(text) {
  const name = text.toLowerCase().replaceAll('-', '_');
  return KEYWORDS.has(name) ? `${name}_` : name;
}

export const pascal = (text) => text.replace(/(?:^|[_-])(\w)/g, (_, letter) => letter.toUpperCase());

export const snake = (text) => text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Lines of at most `WIDTH` characters. */
function wrapped(text, indent) {
  const lines = [];
  let line = indent;
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (line.length + word.length > WIDTH && line !== indent) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join('\n');
}

/** A docstring with its line end; empty without a text. */
export function docstring(text, indent) {
  if (!text) return '';
  // A quote before the closing ones would end the string early.
  const plain = text.trim().replaceAll('\\', '\\\\').replaceAll('"""', "'''").replace(/"$/, '" ');
  const lines = wrapped(`"""${plain}`, indent);
  return `${lines}${plain.endsWith(' ') ? ' ' : ''}"""\n`;
}
