import { parseDocument } from 'yaml';
import { mergePatch } from '../contracts/index.js';
import { CliError, EXIT } from './context.js';

/**
 * A JSON merge patch of what `--set path=value` says, the later ones over the earlier. A dot in a name is written `\.`; the value is
 * YAML, and so JSON; `null` takes a field away.
 * @throws CliError for a text that is no setting
 */
export function patchOf(settings: readonly string[]): Record<string, unknown> {
  return settings.reduce<Record<string, unknown>>((patch, text) => {
    const { path, value } = setting(text);
    const change = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    return withPatch(patch, change as Record<string, unknown>);
  }, {});
}

function setting(text: string): { path: string[]; value: unknown } {
  const at = text.indexOf('=');
  const path = text
    .slice(0, Math.max(0, at))
    .split(/(?<!\\)\./)
    .map((name) => name.replaceAll('\\.', '.'));
  if (path.some((name) => name === ''))
    throw new CliError(`'${text}' sets nothing: write path=value, as train.steps=400`, EXIT.usage);
  const document = parseDocument(text.slice(at + 1), { prettyErrors: true });
  const [error] = document.errors;
  if (error) throw new CliError(`the value of '${text}' is not YAML: ${error.message.trimEnd()}`, EXIT.usage);
  return { path, value: document.toJS() };
}

/** Two patches as one: unlike in a document, a null stays, for it takes something away. */
function withPatch(patch: Record<string, unknown>, change: Record<string, unknown>): Record<string, unknown> {
  const [[name, value] = ['', undefined]] = Object.entries(change);
  const before = patch[name];
  const merges = isObject(before) && isObject(value);
  return { ...patch, [name]: merges ? withPatch(before, value) : value };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A document with these settings. */
export function withSettings<T extends object>(document: T, settings: readonly string[]): T {
  return mergePatch(document, patchOf(settings)) as T;
}
