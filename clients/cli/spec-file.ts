import { readFile } from 'node:fs/promises';
import { parseDocument } from 'yaml';
import type { JobSpec } from '../../contracts/index.js';
import { CliError, type Environment, EXIT } from './context.js';

/**
 * Reads a job document from a YAML or JSON file, or from standard input for `-`. Only its syntax is checked: the API
 * validates the content and reports all errors together.
 * @throws CliError with the position of the error
 */
export async function readSpec(file: string, environment: Environment): Promise<JobSpec> {
  const name = file === '-' ? 'standard input' : file;
  const text = file === '-' ? await readAll(environment.stdin) : await readText(file);
  return mappingIn(text, name, 'job document: it must be a mapping with model, data, train, …') as JobSpec;
}

/**
 * Returns the fields of a YAML or JSON text.
 * @param name of the text in errors @param missing what it does not hold if it is no mapping
 * @throws CliError with the position of the error
 */
export function mappingIn(text: string, name: string, missing: string): object {
  // YAML includes JSON.
  const document = parseDocument(text, { prettyErrors: true });
  const [error] = document.errors;
  if (error) throw new CliError(`${name} is neither YAML nor JSON: ${error.message.trimEnd()}`, EXIT.usage);
  const value: unknown = document.toJS();
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new CliError(`${name} holds no ${missing}`, EXIT.usage);
}

/** Reads a file as text. @throws CliError */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CliError(unreadable(file, error as NodeJS.ErrnoException), EXIT.usage);
  }
}

/** Message for a file that cannot be read. */
export function unreadable(file: string, { code }: NodeJS.ErrnoException): string {
  return code === 'ENOENT' ? `there is no file ${file}` : `${file} can't be read: ${code}`;
}

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts).toString();
}
