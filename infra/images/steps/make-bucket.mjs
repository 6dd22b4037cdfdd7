// Makes the bucket of ZEROFLEET_OBJECT_STORE on the server of ZEROFLEET_S3_ENDPOINT, unless it is there: for
// compose.yaml.
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';

const { ZEROFLEET_OBJECT_STORE, ZEROFLEET_S3_ENDPOINT } = process.env;
const Bucket = new URL(ZEROFLEET_OBJECT_STORE).hostname;
const s3 = new S3Client({ endpoint: ZEROFLEET_S3_ENDPOINT, forcePathStyle: true });
try {
  await s3.send(new CreateBucketCommand({ Bucket }));
} catch (error) {
  if (error.name !== 'BucketAlreadyOwnedByYou') throw error;
}
console.log(`s3://${Bucket} is there`);
