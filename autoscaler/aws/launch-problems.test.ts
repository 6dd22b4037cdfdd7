/** Texts of EC2 about launches that failed. */
import t from 'tap';
import { type Activity, launchProblem } from './launch-problems.js';

const failed = (message: string, fields: Partial<Activity> = {}): Activity => ({
  status: 'Failed',
  started_at: 1_000,
  description: 'Launching a new EC2 instance.  Status Reason: x',
  message,
  ...fields,
});

t.test('answers of EC2 by their words', async (t) => {
  const answers: [code: string, message: string][] = [
    [
      'no_capacity',
      'We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested (eu-central-1a). Launching EC2 instance failed.',
    ],
    [
      'no_capacity',
      'Could not launch Spot Instances. UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration. Launching EC2 instance failed.',
    ],
    [
      'no_capacity',
      'Could not launch On-Demand Instances. InsufficientInstanceCapacity - There is no capacity. Launching EC2 instance failed.',
    ],
    [
      'no_capacity',
      'There is no Spot capacity available that matches your request. Launching EC2 instance failed.',
    ],
    [
      'no_capacity',
      'Could not launch On-Demand Instances. ReservationCapacityExceeded - The requested reservation does not have sufficient compatible and available capacity for this request. Launching EC2 instance failed.',
    ],
    [
      'quota',
      'Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that the specified instance type belongs to. Launching EC2 instance failed.',
    ],
    [
      'quota',
      'Could not launch Spot Instances. MaxSpotInstanceCountExceeded - Max spot instance count exceeded. Launching EC2 instance failed.',
    ],
    [
      'permission',
      'You are not authorized to perform this operation. Encoded authorization failure message: x. Launching EC2 instance failed.',
    ],
    [
      'permission',
      'Access denied when attempting to assume role arn:aws:iam::1:role/x. Validating load balancer configuration failed.',
    ],
    ['permission', 'Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state'],
    ['configuration', "The image id '[ami-0]' does not exist. Launching EC2 instance failed."],
    ['configuration', 'The security group sg-0 does not exist in VPC vpc-0. Launching EC2 instance failed.'],
  ];
  for (const [code, message] of answers) t.same(launchProblem([failed(message)], 0), { code, message }, code);
});

t.test('only the newest launch counts, and none of long ago', async (t) => {
  const old = failed('InsufficientInstanceCapacity');
  t.equal(launchProblem([], 0), null);
  t.equal(launchProblem([old], 1_001), null);
  t.equal(launchProblem([failed('', { status: 'Successful' }), old], 0), null);
  t.match(launchProblem([failed('', { status: 'InProgress' }), old], 0), { code: 'no_capacity' });
  t.equal(launchProblem([failed('x', { description: 'Terminating EC2 instance: i-1' })], 0), null);
  t.equal(launchProblem([failed('x'.repeat(9_000))], 0)?.message.length, 500);
});
