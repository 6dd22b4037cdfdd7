import { type FileHandle, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Architecture } from '../../contracts/architecture.js';
import { architectureOf, importConfig } from '../../job-document/index.js';
import { AnswerEngine, paramTable } from '../../native/js/index.js';

/** Tokens of the longest text. */
const MAX_CONTEXT = 4096;
/** Bytes that are read at a time: Node.js 20 has no buffers of 4 GiB. */
const PIECE_BYTES = 64 * 2 ** 20;

interface TensorEntry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** An unusable model folder; the message contains the reason. */
export class ModelFolderError extends Error {
  override readonly name = 'ModelFolderError';
}

/** Network properties of a Hugging Face config.json. */
function modelConfig(document: Record<string, unknown>): Architecture {
  const { config, errors } = importConfig(document);
  const [first] = errors;
  if (config === null || first !== undefined)
    throw new ModelFolderError(`config.json: ${first?.pointer} ${first?.message}`);
  return architectureOf(config);
}

async function read(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = await file.read(buffer, 0, bytes, position);
  if (bytesRead !== bytes) throw new ModelFolderError('model.safetensors ends too early');
  return buffer;
}

/** Reads bytes `[begin, end)` in pieces. */
async function* pieces(file: FileHandle, begin: number, end: number): AsyncGenerator<Buffer> {
  for (let at = begin; at < end; at += PIECE_BYTES) yield read(file, at, Math.min(end - at, PIECE_BYTES));
}

function storedAs(dtype: string): 'fp32' | 'bf16' {
  if (dtype === 'F32') return 'fp32';
  if (dtype === 'BF16') return 'bf16';
  throw new ModelFolderError(`tensors of type ${dtype} cannot be read`);
}

/**
 * Loads an exported model (config.json and model.safetensors of a Llama).
 * @param dir a Hugging Face model folder
 * @throws ModelFolderError, NativeError
 */
export async function loadEngine(dir: string, threads: number): Promise<AnswerEngine> {
  const model = modelConfig(JSON.parse(await readFile(join(dir, 'config.json'), 'utf8')));
  const file = await open(join(dir, 'model.safetensors'));
  const engine = AnswerEngine.create(model, {
    threads,
    dtype: 'bf16',
    device: 'cpu',
    cache_tokens: Math.min(MAX_CONTEXT, model.max_position_embeddings),
    max_length: MAX_CONTEXT,
    max_sequences: 1,
  });
  try {
    const headerBytes = Number((await read(file, 0, 8)).readBigUInt64LE());
    const header = JSON.parse((await read(file, 8, headerBytes)).toString('utf8')) as Record<
      string,
      TensorEntry
    >;
    for (const { index, name, numel } of paramTable(model)) {
      const tensor = header[name];
      if (!tensor) throw new ModelFolderError(`model.safetensors has no tensor ${name}`);
      const [begin, end] = tensor.data_offsets;
      if (end - begin !== numel * (tensor.dtype === 'F32' ? 4 : 2))
        throw new ModelFolderError(`tensor ${name} has the wrong size`);
      const dtype = storedAs(tensor.dtype);
      let set = 0;
      for await (const piece of pieces(file, 8 + headerBytes + begin, 8 + headerBytes + end)) {
        engine.setParam(index, set, dtype, piece);
        set += piece.length / (dtype === 'fp32' ? 4 : 2);
      }
    }
    return engine;
  } catch (error) {
    engine.close();
    throw error;
  } finally {
    await file.close();
  }
}
