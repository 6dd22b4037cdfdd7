import type { ExportFile, Job } from '../../../contracts/index.js';
import type { RetryPolicy } from '../../../contracts/rank-protocol.js';
import { eventFileName, eventRecords } from '../../../formats/metric-files/tensorboard.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { type JobStreams, metricsBetween } from '../../../state/index.js';
import { ExportFolder } from './export-folder.js';

interface EventFile {
  /** Key of the export's folder. */
  prefix: string;
  /** Steps of the exported checkpoint; later metrics are left out. */
  step: number;
}

/**
 * Writes a job's metrics as an event file of TensorBoard into the folder of an export. May be repeated.
 * @throws errors of the job store and the object store
 */
export async function putEventFile(
  { store, objects }: { store: Pick<JobStreams, 'readSteps'>; objects: ObjectStore },
  job: Pick<Job, 'id' | 'created_at'>,
  { prefix, step }: EventFile,
  policy: RetryPolicy,
): Promise<ExportFile[]> {
  const folder = new ExportFolder(objects, prefix, policy);
  const read = () => metricsBetween(store, job.id, { from: 0, to: step });
  await folder.put(eventFileName(job), () => eventRecords(read, job));
  return folder.files;
}
