import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tarOf } from '../../formats/testing/models.js';
import { projectRoot } from '../../platform/process/root.js';
import type { TestStack } from '../support/stack.js';

const FOLDER = join(projectRoot(), 'test', 'e2e', 'hf-llama', 'model');
const TEMPLATE = join(projectRoot(), 'test', 'openai', 'chat_template.jinja');
/** Data in the documented forms, which the programs for both clients share. */
export const EXAMPLES = join(projectRoot(), 'test', 'openai', 'examples');

/** Positions of the model: room for chats with tools. */
const CONTEXT = 1024;

/** Uploads a small model with a chat template that renders tools, under a name. Returns its id. */
export async function uploadBase({ client }: TestStack, name: string): Promise<string> {
  const files = new Map(readdirSync(FOLDER).map((file) => [file, readFileSync(join(FOLDER, file))] as const));
  const config = JSON.parse(String(files.get('config.json')));
  files.set('config.json', Buffer.from(JSON.stringify({ ...config, max_position_embeddings: CONTEXT })));
  files.set('chat_template.jinja', readFileSync(TEMPLATE));
  return (await client.models.create(name, await tarOf(withLargeHead(files)))).id;
}

/**
 * Multiplies the output projection by 16. An adapter does not change it, and as it is, no answer could be much more
 * likely than another.
 */
function withLargeHead(files: Map<string, Buffer>): Map<string, Buffer> {
  for (const [file, bytes] of files) {
    if (!file.endsWith('.safetensors')) continue;
    const begin = 8 + Number(bytes.readBigUInt64LE(0));
    const header: Record<string, { data_offsets: [number, number] }> = JSON.parse(
      bytes.toString('utf8', 8, begin),
    );
    const [from, to] = header['lm_head.weight']?.data_offsets ?? [0, 0];
    // The exponent of a bfloat16 number is behind its seven bits of fraction.
    for (let at = begin + from; at < begin + to; at += 2) {
      const bits = bytes.readUInt16LE(at);
      if ((bits & 0x7f80) !== 0) bytes.writeUInt16LE(bits + (4 << 7), at);
    }
  }
  return files;
}
