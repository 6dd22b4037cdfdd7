/** What one job's child processes may do in the object store, in the words of IAM. */
import { dirname } from 'node:path/posix';
import { datasetKey, type Job, modelKey } from '../../contracts/index.js';
import { checkpointsPrefix, exportsPrefix, jobKey } from '../../platform/checkpoint/layout.js';
import { tokenizerModel } from '../../spec/index.js';

/** Folders of an object store, each with a slash at its end. */
export interface Reach {
  writes: readonly string[];
  /** Those that are written among them. */
  reads: readonly string[];
}

/** A place in S3. */
export interface Bucket {
  /** As in ARNs: `aws`, `aws-cn`, … */
  partition: string;
  bucket: string;
  /** Begins every key, without a slash at its end; may be empty. */
  prefix: string;
  /** Whether its objects may be encrypted with keys of KMS. Servers other than AWS refuse policies that name what they don't know. */
  kms: boolean;
}

/** A job writes its checkpoints and exports. It reads its own folder, its dataset, and what it begins with and takes its tokenizer from. */
export function reachOf({ id, spec }: Pick<Job, 'id' | 'spec'>): Reach {
  const { init_from } = spec.model;
  const models = [
    tokenizerModel(spec.data),
    init_from !== null && 'model' in init_from ? init_from.model : null,
  ];
  const checkpoint = init_from !== null && 'checkpoint' in init_from ? [`${init_from.prefix}/`] : [];
  const folders = models.flatMap((model) => (model === null ? [] : [`${modelKey(model)}/`]));
  const dataset = `${dirname(datasetKey(spec.data.dataset))}/`;
  return {
    writes: [checkpointsPrefix(id), exportsPrefix(id)],
    reads: [...new Set([`${jobKey(id)}/`, dataset, ...folders, ...checkpoint])],
  };
}

/** The job whose checkpoint a job begins with; without one, the job itself. */
export function sourceJob({ id, spec }: Pick<Job, 'id' | 'spec'>): string {
  const { init_from } = spec.model;
  return init_from !== null && 'checkpoint' in init_from ? init_from.job : id;
}

/**
 * A session policy: the session may do what this and the role allow, both. The keys of KMS are those that the role names. Folders may be
 * listed so that an object that is missing can be told from one that is denied.
 */
export function sessionPolicy({ partition, bucket, prefix, kms }: Bucket, { writes, reads }: Reach): string {
  const arn = `arn:${partition}:s3:::${bucket}`;
  const at = (folders: readonly string[]) => folders.map((folder) => `${prefix && `${prefix}/`}${folder}*`);
  const allow = (Action: string[], Resource: string[], more: object = {}) => ({
    Effect: 'Allow',
    Action,
    Resource,
    ...more,
  });
  const objects = (folders: readonly string[]) => at(folders).map((pattern) => `${arn}/${pattern}`);
  return JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      allow(['s3:GetObject'], objects(reads)),
      allow(['s3:PutObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'], objects(writes)),
      allow(['s3:ListBucket'], [arn], { Condition: { StringLike: { 's3:prefix': at(reads) } } }),
      ...(kms ? [allow(['kms:Decrypt', 'kms:GenerateDataKey'], ['*'])] : []),
    ],
  });
}
