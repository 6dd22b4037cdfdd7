import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LLAMA_TRAITS } from '../../contracts/architecture.js';
import { Trainer } from './trainer.js';
import { plainSettings, type TrainerConfig } from './trainer-config.js';

/**
 * Where ranks of tests meet. Gloo takes the first client of a port for its other rank. At 127.0.0.1 that client may
 * belong to another test that looks for a server which had this port before.
 */
export const RANKS_ADDRESS = '127.0.0.2';

/** A job of seconds: two small layers, seven leaves per step, a corpus with a pattern to learn. For tests only. */
export function tinyConfig(tokenFile: string): TrainerConfig {
  const settings = plainSettings('bf16');
  return {
    ...settings,
    model: {
      ...LLAMA_TRAITS,
      hidden_size: 48,
      intermediate_size: 112,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      head_dim: 12,
      vocab_size: 101,
      max_position_embeddings: 64,
      norm_eps: 1e-5,
      rope_theta: 10_000,
      tie_word_embeddings: false,
      initializer_range: 0.02,
      residual_initializer_range: 0.02,
    },
    device: 'cpu',
    reserved_bytes: 0,
    rank: 0,
    world_size: 1,
    threads: 1,
    sequence_length: 17,
    global_batch_size: 14,
    micro_batch_size: 2,
    steps: 20,
    seed: 1,
    data_seed: 1,
    optimizer: { ...settings.optimizer, lr: 1e-2 },
    lr_schedule: { ...settings.lr_schedule, type: 'cosine', warmup_steps: 3, min_lr: 1e-4 },
    zero: { ...settings.zero, bucket_bytes: 65_536 },
    training_files: [{ path: tokenFile, weight: 1 }],
    evaluation_files: [],
    comm: { backend: 'solo', bind_address: RANKS_ADDRESS, timeout_ms: 60_000 },
  };
}

/** Writes a small token file of a few sequences at least into a new directory; `remove` deletes both. */
export function tinyTokens(length = 17): { path: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'zerofleet-tokens-'));
  const path = join(directory, 'tokens.bin');
  const tokens = Array.from(
    { length: Math.max(17 * 24 + 9, 4 * length + 1) },
    (_, i) => ((i >> 1) * 37) % 101,
  );
  writeFileSync(path, tokenFile(tokens, length));
  return { path, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** A token file of one document, cut every `length` tokens; native/data/token_file.h has the layout. */
export function tokenFile(tokens: readonly number[], length: number): Buffer {
  const sequences = Array.from({ length: Math.floor((tokens.length - 1) / length) }, (_, i) =>
    BigInt(i * length),
  );
  const counts = [tokens.length, sequences.length, 1, length].map(BigInt);
  const tables = [
    Buffer.from('zftokens'),
    Uint32Array.of(1, 2),
    BigUint64Array.from(counts),
    Uint16Array.from(tokens),
    BigUint64Array.from([...sequences, 0n]),
    new Uint8Array(Math.ceil(tokens.length / 8)).fill(255),
  ].map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength));
  return Buffer.concat(tables.flatMap((table) => [table, Buffer.alloc(-table.length & 7)]));
}

export { useAddon } from './addon.js';

/**
 * Connects a world of ranks inside this process, over Gloo or on GPUs over NCCL, each key relayed to every rank. Each
 * rank blocks a thread of the pool meanwhile. When one fails, none is left that does: the next world needs all threads.
 */
export async function connectWorld(config: TrainerConfig, worldSize: number): Promise<Trainer[]> {
  const world: Trainer[] = [];
  const relay = (key: string, value: Uint8Array) => {
    for (const trainer of world) trainer.deliver(key, value);
  };
  for (let rank = 0; rank < worldSize; rank++) {
    const comm = {
      ...config.comm,
      backend: config.device === 'cuda' ? ('nccl' as const) : ('gloo' as const),
    };
    world.push(Trainer.create({ ...config, rank, world_size: worldSize, comm }, relay));
  }
  const connecting = world.map((trainer) => trainer.connect());
  try {
    await Promise.all(connecting);
  } catch (error) {
    await closeWorld(world);
    await Promise.allSettled(connecting);
    throw error;
  }
  return world;
}

/** Closes all ranks of a world, and waits until their memory is free. */
export async function closeWorld(world: Trainer[]): Promise<void> {
  await Promise.all(world.map((trainer) => trainer.close()));
}

/** The state digest of a world: the sum of its ranks' shares mod 2^128. */
export function worldDigest(world: Trainer[]): string {
  const sum = world.reduce((total, trainer) => total + BigInt(`0x${trainer.digestPart()}`), 0n);
  return (sum & ((1n << 128n) - 1n)).toString(16).padStart(32, '0');
}
