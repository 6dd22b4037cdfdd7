/** `npm run sample -- DIRECTORY`: prints text from an exported model. */
import { parseArgs } from 'node:util';
import { NativeError } from '../../native/js/index.js';
import { ModelFolderError } from './model-folder.js';
import { sampleText } from './sample-text.js';

const USAGE =
  'usage: npm run sample -- DIRECTORY [--prompt TEXT] [--bytes 300] [--temperature 0.7] [--top-k 0] [--seed 1]';

function readOptions(args: readonly string[]) {
  const text = (value: string) => ({ type: 'string', default: value }) as const;
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      prompt: text('#'),
      bytes: text('300'),
      temperature: text('0.7'),
      'top-k': text('0'),
      seed: text('1'),
    },
  });
  const numbers = [values.bytes, values.temperature, values['top-k'], values.seed].map(Number);
  const [dir] = positionals;
  if (positionals.length !== 1 || dir === undefined || numbers.some((value) => !(value >= 0))) return null;
  const [max_bytes = 0, temperature = 0, top_k = 0, seed = 0] = numbers;
  return { dir, options: { prompt: values.prompt, max_bytes, temperature, top_k, seed } };
}

/** Runs the command; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const request = readOptions(args);
  if (!request) {
    process.stderr.write(`${USAGE}\n`);
    process.exitCode = 2;
    return;
  }
  try {
    process.stdout.write(`${await sampleText(request.dir, request.options)}\n`);
  } catch (error) {
    const isFileError = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (!(error instanceof ModelFolderError || error instanceof NativeError || isFileError)) throw error;
    process.stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
