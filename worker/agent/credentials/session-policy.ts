/**
 * IAM session policy for the object store access of the child processes of one job, or of the hosts of one uploaded
 * model.
 */
import { dirname } from 'node:path/posix';
import { datasetKey, type Job, type Model, modelKey } from '../../../contracts/index.js';
import { checkpointsPrefix, exportsPrefix, jobKey } from '../../../formats/checkpoint/layout.js';
import { modelsOf } from '../../../job-document/index.js';

const WRITING = ['s3:PutObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'];

/** Folders of an object store, each with a trailing slash. */
interface Reach {
  writes: readonly string[];
  /** Readable folders, including the writable ones. */
  reads: readonly string[];
}

/** Location in S3. */
export interface Bucket {
  /** ARN partition: `aws`, `aws-cn`, … */
  partition: string;
  bucket: string;
  /** Prefix of every key, without a trailing slash; may be empty. */
  prefix: string;
  /** True if objects may be encrypted with KMS keys. Servers other than AWS refuse policies with unknown actions. */
  kms: boolean;
}

/** A session belongs to a job, or to an uploaded model that answers. */
export type SessionOwner = Pick<Job, 'id' | 'spec'> | Pick<Model, 'id' | 'base'>;

/** Returns the folders of the owner of a session. */
export function reachOf(owner: SessionOwner): Reach {
  return 'spec' in owner ? reachOfJob(owner) : reachOfModel(owner);
}

/** A model reads itself and the base of its adapter. */
function reachOfModel({ id, base }: Pick<Model, 'id' | 'base'>): Reach {
  const models = base === undefined ? [id] : [id, base];
  return { writes: [], reads: models.map((model) => `${modelKey(model)}/`) };
}

/**
 * A job writes its checkpoints and exports. It reads its own folder, its dataset unless it has several, its initial
 * model or checkpoint, the base of its adapters and its tokenizer.
 */
function reachOfJob({ id, spec }: Pick<Job, 'id' | 'spec'>): Reach {
  const { init_from, base } = spec.model;
  const checkpoints = [init_from, base].flatMap((from) =>
    from && 'checkpoint' in from ? [`${from.prefix}/`] : [],
  );
  const folders = modelsOf(spec).map((model) => `${modelKey(model)}/`);
  const { dataset } = spec.data;
  const data = dataset === undefined ? [] : [`${dirname(datasetKey(dataset))}/`];
  return {
    writes: [checkpointsPrefix(id), exportsPrefix(id)],
    reads: [...new Set([`${jobKey(id)}/`, ...data, ...folders, ...checkpoints])],
  };
}

/** Returns the job of the initial checkpoint; without one, the owner itself. */
export function sourceOf(owner: SessionOwner): string {
  const initFrom = 'spec' in owner ? owner.spec.model.init_from : null;
  return initFrom !== null && 'checkpoint' in initFrom ? initFrom.job : owner.id;
}

/**
 * Returns a session policy: a session has the rights that both this policy and the role allow. The role names the KMS
 * keys. Listing of the folders is allowed so that a missing object is distinguished from a denied one.
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
      // IAM refuses a statement without resources.
      ...(writes.length > 0 ? [allow(WRITING, objects(writes))] : []),
      allow(['s3:ListBucket'], [arn], { Condition: { StringLike: { 's3:prefix': at(reads) } } }),
      ...(kms ? [allow(['kms:Decrypt', 'kms:GenerateDataKey'], ['*'])] : []),
    ],
  });
}
