// The loop of `npm run dev`. Changed TypeScript, C++, contracts/openapi/ and clients/console/ are compiled, and the
// stack is restarted with the same data: running jobs are saved and continue. Compile errors are reported, and the
// running stack stays.
import { spawn } from 'node:child_process';
import { EventEmitter, on, once } from 'node:events';
import { readFileSync, watch, writeFileSync } from 'node:fs';
import { SetupError } from '../bootstrap/errors.mjs';
import { contractGenerators } from '../bootstrap/generators.mjs';
import { inRoot } from '../bootstrap/paths.mjs';
import { ensureNative, ensurePrograms, ensureTypescript, ensureWeb } from '../bootstrap/setup.mjs';

/** Editors write a file in several steps, and several files are saved together. */
const SETTLE_MS = 150;
const SOURCE = /(\.(tsx?|css|html|cc|h|cu|cuh|cmake)|CMakeLists\.txt|CMakePresets\.json|^openapi\/.+\.yaml)$/;
const BUILT = /(^|\/)build[-/]/;

/**
 * Calls `onChange` when sources have changed and no change followed for a moment. @returns {() => void} stops watching
 */
function watchSources(onChange) {
  let timer;
  const take = (_, name) => {
    if (!SOURCE.test(name ?? '') || BUILT.test(name)) return;
    clearTimeout(timer);
    timer = setTimeout(onChange, SETTLE_MS);
  };
  const { include } = JSON.parse(readFileSync(inRoot('tsconfig.json'), 'utf8'));
  const folders = new Set(include.map((path) => path.split('/')[0]));
  const watchers = Array.from(folders, (folder) => watch(inRoot(folder), { recursive: true }, take));
  // A file watcher would lose a replaced file, so folders are watched.
  watchers.push(watch(inRoot(), take));
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

/** Writes a generated file. @returns {Promise<boolean>} true if it has changed */
async function isRewritten({ file, make }) {
  const text = await make();
  if (text === readFileSync(inRoot(file), 'utf8')) return false;
  writeFileSync(inRoot(file), text);
  return true;
}

/** @returns {Promise<boolean>} true if the contract has changed */
async function updateContract() {
  const [modelSchemas, ...others] = contractGenerators;
  let changed = await isRewritten(modelSchemas);
  // Each of the others follows from the one before, the first from files that a person writes, too.
  for (const generator of others) {
    if (!(await isRewritten(generator))) break;
    changed = true;
  }
  return changed;
}

/**
 * @returns {() => Promise<boolean>} compiles the changes since the last call; resolves to true if the stack has to be
 * restarted: not without changes, and not after a compile error
 */
function rebuilder() {
  return async () => {
    try {
      const hasNewContract = await updateContract();
      const built = [
        await ensureNative('release', 'native core: building'),
        await ensureTypescript(),
        await ensurePrograms(),
        await ensureWeb(),
      ];
      return hasNewContract || built.includes(true);
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      console.error(`\n${error.message}\n\nthe running stack stays; it is restarted once this compiles`);
      return false;
    }
  };
}

/** The stack as a child process. */
function startStack(args) {
  const program = inRoot('dist/ops/stack/main.js');
  const child = spawn(process.execPath, ['--enable-source-maps', program, ...args], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  return {
    isRunning: () => child.exitCode === null && child.signalCode === null,
    /** Stops it properly; resolves when it has exited. Idempotent. */
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/**
 * Runs the stack until SIGINT or SIGTERM; rebuilds and restarts it as sources change. A stack that exits by itself is
 * restarted after the next change.
 * @param {string[]} args of `npm start`
 */
export async function developmentLoop(args) {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => ending.abort());
  const sources = new EventEmitter();
  const closeWatchers = watchSources(() => sources.emit('change'));
  const rebuild = rebuilder();
  let stack = startStack(args);
  try {
    for await (const _ of on(sources, 'change', { signal: ending.signal })) {
      const isRebuilt = await rebuild();
      if (!isRebuilt && stack.isRunning()) continue;
      await stack.stop();
      stack = startStack(args);
    }
  } catch (error) {
    if (!ending.signal.aborted) throw error;
  } finally {
    closeWatchers();
    await stack.stop();
  }
}
