/**
 * Storage that uploads take which are not complete. Parts may be sent straight to the object store, where nobody counts them, so an
 * upload counts with all that it announced, from its beginning until it is a dataset, or is gone.
 */
export interface UploadSpace {
  /**
   * Idempotent.
   * @throws `storage_quota_exceeded`
   */
  reserveUpload(project: string, uploadId: string, bytes: number): Promise<void>;
  /** Counts it no longer. Idempotent; `putDataset` does it for an upload that is complete. */
  releaseUpload(project: string, uploadId: string): Promise<void>;
  /** Ids of the uploads that count. */
  reservedUploads(project: string): Promise<string[]>;
}
