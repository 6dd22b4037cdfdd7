import { indexKey, redisCall, type StoreContext } from '../core/context.js';
import type { UploadSpace } from './uploads-port.js';

export function uploadSpace(context: StoreContext): UploadSpace {
  const { commands, redis } = context;
  const count = async (project: string, upload_id: string, bytes: number) => {
    await commands.run('reserve_upload', { project, upload_id, bytes });
  };
  return {
    reserveUpload: count,
    releaseUpload: (project, uploadId) => count(project, uploadId, 0),

    async reservedUploads(project) {
      const ids = await redisCall(redis.hkeys(indexKey(context, project, 'stored')));
      return ids.filter((id) => id.startsWith('upl_'));
    },
  };
}
