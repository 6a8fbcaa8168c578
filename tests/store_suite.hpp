#pragma once
// What every LeaseStore owes its callers, as tests that run against any of them. Write a World as
// store_suite_fixture.hpp asks for it, and in namespace redlease:
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(Memory, LeaseStoreSuite, World);
#include "store_suite_acquire.hpp"
#include "store_suite_keep.hpp"
#include "store_suite_resource.hpp"

namespace redlease {

REGISTER_TYPED_TEST_SUITE_P(LeaseStoreSuite, AFreeKeyIsGrantedAndCountedFromBeforeTheCall,
                            AHeldKeyIsBusyForEveryOtherToken, TheSameTokenIsGrantedTheSameFenceAgain,
                            AcquiringAgainLengthens, AcquiringAgainNeverShortens,
                            AnExpiredTokenThatComesBackIsANewGrant, OfManyAtOnceOneIsGranted,
                            FencesGrowThroughReleaseExpiryAndBreak, TheFenceIsAboveTheFloorAndStaysThere,
                            ALowFloorChangesNothing, LabelsOfAnyBytesAreShown, NamesOfAnyBytesAreDistinct,
                            TheBoundsOfTheTtlWork, NothingIsDoneOnceStopIsAskedOrTheDeadlinePast,
                            RenewalLengthensAndCountsFromBeforeTheCall, RenewalNeverShortens,
                            RenewalNeverCreatesAndTellsGoneFromTaken, ALateRenewalDoesNotRevive,
                            AReleasedLeaseFreesTheKey, AReleaseWithAnotherTokenLeavesTheKey, AReleaseTellsGoneFromTaken,
                            AdoptAnswersTheFenceOfTheGrant, AdoptComparesAsRenewDoes, InspectShowsTheHolder,
                            InspectOfAFreeKeyShowsNobody, BreakFreesTheKeyForTheNext, AFencedValueRefusesOlderFences,
                            FencedValuesAndLeasesDoNotMix, PingAnswersAndTheServerHasAName);

}  // namespace redlease
