/**
 * llama.cpp as the npm package node-llama-cpp, with its build for CPUs. It is downloaded once, to
 * `.build/node-llama-cpp/VERSION`.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../platform/process/root.js';

const run = promisify(execFile);
const VERSION = '3.22.1';
const CACHE = join(projectRoot(), '.build', 'node-llama-cpp');
const PROGRAM = join(projectRoot(), 'test', 'gguf', 'run-llama.mjs');
const NPM_OPTIONS = ['--omit=optional', '--ignore-scripts', '--no-audit', '--fetch-retries=1'];
/** Output of a run: tokens and warnings. */
const MAX_OUTPUT_BYTES = 1 << 26;

interface RunRequest {
  /** Path of the GGUF file. */
  model: string;
  /** Path of a GGUF file with adapters. */
  lora?: string;
  /** Texts to tokenize; with `special` their special tokens are parsed. */
  texts: { text: string; special: boolean }[];
  /** Prompts to answer greedily, as tokens. */
  prompts: number[][];
  max_tokens: number;
}

interface RunResult {
  tokens: number[][];
  /** Without the token that ends an answer. */
  answers: number[][];
  bos: number | null;
  eos: number | null;
  eot: number | null;
  addsBos: boolean;
  warnings: string[];
}

/** Returns the folder of the package, or the reason in one line why it is unavailable. */
export async function llamaCpp(): Promise<{ folder: string } | { missing: string }> {
  const folder = join(CACHE, VERSION);
  try {
    if (!existsSync(folder)) await download(folder);
    return { folder };
  } catch (error) {
    return {
      missing: `node-llama-cpp is not available from npm: ${(error as Error).message.split('\n')[0]}`,
    };
  }
}

export async function runLlama(folder: string, request: RunRequest): Promise<RunResult> {
  const work = mkdtempSync(join(tmpdir(), 'zf-llama-'));
  try {
    const file = join(work, 'request.json');
    writeFileSync(file, JSON.stringify(request));
    const { stdout } = await run(process.execPath, [PROGRAM, folder, file], { maxBuffer: MAX_OUTPUT_BYTES });
    return JSON.parse(stdout) as RunResult;
  } finally {
    rmSync(work, { recursive: true });
  }
}

async function download(folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const partial = mkdtempSync(join(CACHE, 'partial-'));
  try {
    const system = { linux: 'linux', darwin: 'mac', win32: 'win' }[process.platform as string] ?? '';
    const metal = system === 'mac' && process.arch === 'arm64' ? '-metal' : '';
    const binaries = `@node-llama-cpp/${system}-${process.arch}${metal}`;
    const packages = [`node-llama-cpp@${VERSION}`, `${binaries}@${VERSION}`];
    await run('npm', ['install', '--prefix', partial, ...packages, ...NPM_OPTIONS]);
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
