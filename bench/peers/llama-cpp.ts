import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { architectureMetadata, ggufArchitecture } from '../../formats/gguf/architecture.js';
import { string, uint32 } from '../../formats/gguf/file.js';
import { FILE_TYPES } from '../../formats/gguf/tensors.js';
import { ggufBytes } from '../../formats/gguf/tokenizer.js';
import { architectureOf } from '../../job-document/index.js';
import { castTo16Bit, type ParamInfo, paramTable } from '../../native/js/index.js';
import { openObjectStore } from '../../platform/object-store/open.js';
import { projectRoot } from '../../platform/process/root.js';
import { llamaCpp } from '../../test/gguf/llama-cpp.js';
import { ExportFolder } from '../../worker/tasks/export/export-folder.js';
import { modelTensors, putGguf } from '../../worker/tasks/export/export-gguf.js';
import { configOf, randomWeights, type ServedModel } from '../serve/models.js';

const run = promisify(execFile);
const SOURCE = join(projectRoot(), 'bench', 'peers', 'llama_cpp_answers.cc');
const FOLDER = 'served';
const FILE = 'model.gguf';
const NO_RETRY = { attempts: 1, first_delay_ms: 0, max_delay_ms: 0 };

export const peerTypes = ['bf16', 'q8_0'] as const;
export type PeerType = (typeof peerTypes)[number];

export interface Speed {
  tokens_per_s: number;
  first_token_ms: number;
}

/** llama.cpp with one model in memory, in a process of its own. */
export class LlamaCpp {
  private readonly lines: AsyncIterator<string>;

  private constructor(
    private readonly child: ChildProcessWithoutNullStreams,
    private readonly output: Interface,
  ) {
    this.lines = output[Symbol.asyncIterator]();
  }

  /**
   * Writes the model as GGUF and loads it. @param limits most requests at once, most tokens of one
   * @throws Error with the reason if llama.cpp or a compiler is missing
   */
  static async start(
    model: ServedModel,
    type: PeerType,
    { threads, requests, length }: { threads: number; requests: number; length: number },
  ): Promise<LlamaCpp> {
    const found = await llamaCpp();
    if ('missing' in found) throw new Error(found.missing);
    const libraries = join(found.folder, 'node_modules', '@node-llama-cpp', 'linux-x64', 'bins', 'linux-x64');
    const folder = mkdtempSync(join(tmpdir(), 'zf-llama-'));
    try {
      const program = await compiled(found.folder, libraries);
      await writeGguf(folder, model, type);
      const args = [join(folder, FOLDER, FILE), libraries, threads, requests, length].map(String);
      const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
      child.stderr.pipe(process.stderr);
      const peer = new LlamaCpp(child, createInterface(child.stdout));
      // The file stays mapped after its folder is gone.
      await peer.answer(1, 1, 2);
      return peer;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  /** Answers a batch of random prompts. */
  async answer(requests: number, prompt: number, tokens: number): Promise<Speed> {
    this.child.stdin.write(`${requests} ${prompt} ${tokens}\n`);
    const line = await this.lines.next();
    if (line.done) throw new Error('llama.cpp has ended');
    return JSON.parse(line.value) as Speed;
  }

  close(): void {
    this.output.close();
    this.child.kill();
  }
}

/** Compiles the peer beside the package, whose bundle of sources has the headers. */
async function compiled(folder: string, libraries: string): Promise<string> {
  const sources = join(folder, 'sources');
  const program = join(folder, 'llama_cpp_answers');
  if (!existsSync(sources))
    await run('git', [
      'clone',
      '--quiet',
      join(folder, 'node_modules', 'node-llama-cpp', 'llama', 'gitRelease.bundle'),
      sources,
    ]);
  const linked = readdirSync(libraries).filter((name) =>
    /^lib(llama|ggml|ggml-base)(\.v.*)?\.so$/.test(name),
  );
  const includes = ['include', join('ggml', 'include')].map((name) => `-I${join(sources, name)}`);
  await run('c++', [
    ...['-std=c++20', '-O2', '-Wall', '-Wextra', '-Werror', ...includes, SOURCE, '-o', program],
    ...linked.map((name) => join(libraries, name)),
    `-Wl,-rpath,${libraries}`,
  ]);
  return program;
}

async function writeGguf(folder: string, model: ServedModel, type: PeerType): Promise<void> {
  const config = configOf(model);
  const architecture = architectureOf(config);
  const objects = await openObjectStore(pathToFileURL(folder).href);
  try {
    await putGguf(
      new ExportFolder(objects, FOLDER, NO_RETRY),
      FILE,
      [
        ['general.architecture', string(ggufArchitecture(config))],
        ['general.file_type', uint32(FILE_TYPES[type].code)],
        ...(type === 'q8_0' ? ([['general.quantization_version', uint32(2)]] as const) : []),
        ...architectureMetadata(config),
        ...ggufBytes(architecture.vocab_size).metadata,
      ],
      modelTensors<ParamInfo>(
        { config, params: paramTable(architecture), read: randomWeights },
        type,
        castTo16Bit,
      ),
    );
  } finally {
    await objects.close();
  }
}
