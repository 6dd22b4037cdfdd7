import { parseDocument } from 'yaml';
import { mergePatch } from '../../contracts/index.js';
import { CliError, EXIT } from './context.js';

/**
 * JSON merge patch of all `--set path=value`; later ones override earlier ones. A dot in a name is written `\.`; the
 * value is YAML, and so JSON; `null` removes a field.
 * @throws CliError for a malformed setting
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
    throw new CliError(`'${text}' is not a setting: write path=value, e.g. train.steps=400`, EXIT.usage);
  const document = parseDocument(text.slice(at + 1), { prettyErrors: true });
  const [error] = document.errors;
  if (error) throw new CliError(`the value of '${text}' is not YAML: ${error.message.trimEnd()}`, EXIT.usage);
  return { path, value: document.toJS() };
}

/** Merges two patches; unlike in a document, null is kept because it removes a field. */
function withPatch(patch: Record<string, unknown>, change: Record<string, unknown>): Record<string, unknown> {
  const [[name, value] = ['', undefined]] = Object.entries(change);
  const before = patch[name];
  const merges = isObject(before) && isObject(value);
  return { ...patch, [name]: merges ? withPatch(before, value) : value };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Applies settings to a document. */
export function withSettings<T extends object>(document: T, settings: readonly string[]): T {
  return mergePatch(document, patchOf(settings)) as T;
}
