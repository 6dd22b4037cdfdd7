export const MANIFEST_FILE = 'MANIFEST.json';

/** Key of a job's folder; everything that the job makes lies below it. */
export function jobKey(jobId: string): string {
  return `jobs/${jobId}`;
}

/** Name of the directory of one save. Sorted by name, directories are sorted by step. */
export function checkpointDirectory({
  step,
  epoch,
  nonce,
}: {
  step: number;
  epoch: number;
  nonce: string;
}): string {
  return `${String(step).padStart(9, '0')}-${epoch}-${nonce}`;
}

/** Prefix of a job's checkpoints, with the slash at its end. */
export function checkpointsPrefix(jobId: string): string {
  return `${jobKey(jobId)}/checkpoints/`;
}

/** Key of the directory of a checkpoint, without a slash at its end. */
export function checkpointKey(jobId: string, directory: string): string {
  return `${checkpointsPrefix(jobId)}${directory}`;
}

/** `shard-00000-of-00004.safetensors` */
export function shardName(rank: number, world_size: number): string {
  const digits = (value: number) => String(value).padStart(5, '0');
  return `shard-${digits(rank)}-of-${digits(world_size)}.safetensors`;
}

/** Key of the folder of the model exported after `step` steps. */
export function exportPrefix(jobId: string, step: number): string {
  return `${jobKey(jobId)}/exports/${step}`;
}

export function resultKey(jobId: string): string {
  return `${jobKey(jobId)}/result.json`;
}
