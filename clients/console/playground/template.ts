/** Chat templates of models, read once each. */
import { client } from '../app/connection.js';

const known = new Map<string, Promise<string | null>>();

/** Returns the template of a checkpoint or of an uploaded model; null for none, or for one that cannot be read. */
export function templateOf(id: string): Promise<string | null> {
  const found = known.get(id) ?? read(id).catch(() => null);
  known.set(id, found);
  return found;
}

async function read(id: string): Promise<string | null> {
  if (id.startsWith('mdl_')) return (await client.models.get(id)).tokenizer?.chat_template ?? null;
  if (!id.startsWith('ckpt_')) return null;
  const { job_id } = await client.checkpoints.get(id);
  return (await client.jobs.get(job_id)).spec.data.chat_template ?? null;
}
