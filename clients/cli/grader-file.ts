import { basename, extname } from 'node:path';
import type { Grader } from '../../contracts/index.js';
import { mappingIn, readText } from './spec-file.js';

/** What commands say about the file. */
export const GRADER_FILE = 'a Python file with grade(sample, item), or a grader as YAML or JSON';

/**
 * Reads a grader. A Python file is the source of a grader with the file's name; any other file has a grader's fields,
 * which the API checks.
 * @throws CliError for a file that cannot be read
 */
export async function readGrader(file: string): Promise<Grader> {
  const text = await readText(file);
  const extension = extname(file);
  if (extension === '.py') return { type: 'python', name: basename(file, extension), source: text };
  return mappingIn(text, file, 'grader: it must be a mapping with type, name, …') as Grader;
}
