/** The filter `tojson`: Python's `json.dumps` with origins. */

import type { Value } from './library.js';
import { OriginText, TEMPLATE } from './origin-text.js';
import { FieldsValue, isText, originsOf } from './values.js';

export interface JsonStyle {
  /** Spaces per level; null: one line. */
  indent: number | null;
  ensure_ascii: boolean;
  sort_keys: boolean;
  /** Between items, and between a name and its value; null: Python's. */
  separators: readonly [item: string, key: string] | null;
}

export const DEFAULT_STYLE: JsonStyle = {
  indent: null,
  ensure_ascii: false,
  sort_keys: false,
  separators: null,
};

const plain = (text: string) => OriginText.of(text, TEMPLATE);

/** @throws Error for a value that is no JSON */
export function toJson(value: Value, style: JsonStyle, depth = 0): OriginText {
  if (isText(value)) return quoted(originsOf(value), style);
  const content: unknown = value.value;
  if (content === null || content === undefined) return plain('null');
  if (content instanceof Map) {
    const origin = value instanceof FieldsValue ? value.origin : TEMPLATE;
    const names = [...content.keys()] as string[];
    if (style.sort_keys) names.sort((a, b) => (a < b ? -1 : 1));
    const [, key = ': '] = style.separators ?? [];
    const entries = names.map((name) =>
      OriginText.concat([
        quoted(OriginText.of(name, origin), style),
        plain(key),
        toJson(content.get(name) as Value, style, depth + 1),
      ]),
    );
    return bracketed('{', entries, '}', style, depth);
  }
  if (Array.isArray(content)) {
    const items = content.map((item: Value) => toJson(item, style, depth + 1));
    return bracketed('[', items, ']', style, depth);
  }
  if (typeof content === 'function') throw new Error('a function is no JSON');
  return plain(value.toString());
}

function bracketed(
  open: string,
  items: readonly OriginText[],
  close: string,
  { indent, separators }: JsonStyle,
  depth: number,
): OriginText {
  if (items.length === 0) return plain(open + close);
  const line = (depth: number) => (indent === null ? '' : `\n${' '.repeat(indent * depth)}`);
  const [item = indent === null ? ', ' : ','] = separators ?? [];
  const inner = OriginText.join(items, plain(item + line(depth + 1)));
  return OriginText.concat([plain(open + line(depth + 1)), inner, plain(line(depth) + close)]);
}

function quoted(text: OriginText, { ensure_ascii }: JsonStyle): OriginText {
  const escaped = text.mappedRuns((part) => {
    const json = JSON.stringify(part).slice(1, -1);
    if (!ensure_ascii) return json;
    return json.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  });
  return OriginText.concat([plain('"'), escaped, plain('"')]);
}
