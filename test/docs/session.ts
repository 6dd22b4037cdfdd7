/** Runs the commands of a Markdown page, block by block in one shell. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface Block {
  /** Line of the page, from 1. */
  line: number;
  commands: string;
  /** Expected output according to the page; null without one. */
  expected: string | null;
}

const BLOCK = /^```sh\n([\s\S]*?)^```\n(?:```text\n([\s\S]*?)^```\n)?/gm;

/** Shell blocks of a page, each with the following output block. */
export function blocksOf(page: string): Block[] {
  return [...page.matchAll(BLOCK)].map(({ 0: whole, 1: commands = '', 2: expected, index }) => ({
    line: page.slice(0, index).split('\n').length + (whole.startsWith('\n') ? 1 : 0),
    commands,
    expected: expected ?? null,
  }));
}

/** Pattern for an expected output, with `…` as a placeholder: within a line, or for whole lines. */
export function expectation(expected: string): RegExp {
  const lines = expected.replace(/\n$/, '').split('\n');
  const pattern = lines.map((line) =>
    line === '…' ? '.+(?:\\n.*)*?' : line.split('…').map(escaped).join('[^\\n]*?'),
  );
  return new RegExp(`^${pattern.join('\\n')}\\n*$`);
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replace(/ +/g, ' +');

export interface Outcome {
  output: string;
  /** Exit code of the block's last failed command, or 0; null if the shell exited before. */
  code: number | null;
}

const END = '\u0001end of block';

/**
 * Runs the blocks. The first failed command ends the shell.
 * @param prelude commands of the test itself, whose output is dropped
 * @returns an outcome per started block
 */
export async function runBlocks(
  blocks: readonly Block[],
  prelude: string,
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<Outcome[]> {
  const script = [
    'set -eo pipefail',
    prelude,
    ...blocks.map(({ commands }) => `printf '%s\\n' '${END}'\n${commands}`),
  ].join('\n');
  const shell = spawn('bash', [], { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      output += piece;
    });
  }
  shell.stdin.end(script);
  const [code] = (await once(shell, 'close')) as [number | null];
  const parts = output.split(`${END}\n`).slice(1);
  return parts.map((part, index) => ({ output: part, code: index === parts.length - 1 ? code : 0 }));
}
