/**
 * Storage reserved for incomplete uploads. Parts may be sent straight to the object store, where they are not counted, so an upload
 * counts with its announced size from its beginning until it is a dataset or is gone.
 */
export interface UploadSpace {
  /**
   * Reserves storage for an upload. Idempotent.
   * @throws `storage_quota_exceeded`
   */
  reserveUpload(project: string, uploadId: string, bytes: number): Promise<void>;
  /** Releases the reservation. Idempotent; `putDataset` does it for a complete upload. */
  releaseUpload(project: string, uploadId: string): Promise<void>;
  /** Lists the ids of uploads with a reservation. */
  reservedUploads(project: string): Promise<string[]>;
}
