import { indexKey, redisCall, type StoreContext } from '../core/context.js';

/**
 * Storage reserved for incomplete uploads. Parts may be sent straight to the object store, where they are not
 * counted. So an upload counts with its announced size from its beginning until it is a dataset or is gone.
 */
export type UploadSpace = ReturnType<typeof uploadSpace>;

export function uploadSpace(context: StoreContext) {
  const { commands, redis } = context;
  const count = async (project: string, uploadId: string, bytes: number) => {
    await commands.run('reserve_upload', { project, upload_id: uploadId, bytes });
  };
  return {
    /**
     * Reserves storage for an upload. Idempotent.
     * @throws `storage_quota_exceeded`
     */
    reserveUpload: count,
    /** Releases the reservation. Idempotent; `putDataset` does it for a complete upload. */
    releaseUpload: (project: string, uploadId: string): Promise<void> => count(project, uploadId, 0),

    /** Lists the ids of uploads with a reservation. */
    async reservedUploads(project: string): Promise<string[]> {
      const ids = await redisCall(redis.hkeys(indexKey(context, project, 'stored')));
      return ids.filter((id) => id.startsWith('upl_'));
    },
  };
}
