#include "redlease/wire/exchange.hpp"

#include <gtest/gtest.h>

using namespace redlease;

TEST(Exchange, IsNotExecutedWhileAByteHasNotLeft) {
  Exchange exchange(10, 0);
  EXPECT_EQ(exchange.delivery(), Delivery::not_executed);
  exchange.wrote(9);
  EXPECT_EQ(exchange.delivery(), Delivery::not_executed);
  EXPECT_EQ(exchange.left(), 1U);
}

TEST(Exchange, IsInDoubtFromTheLastByteToTheReply) {
  Exchange exchange(10, 0);
  exchange.wrote(4);
  exchange.wrote(6);
  EXPECT_EQ(exchange.delivery(), Delivery::in_doubt);
  EXPECT_TRUE(exchange.saw_reply());
  EXPECT_EQ(exchange.delivery(), Delivery::answered);
}

TEST(Exchange, RepliesToEarlierRequestsAreNotItsOwn) {
  Exchange exchange(10, 2);
  exchange.wrote(10);
  EXPECT_FALSE(exchange.saw_reply());
  EXPECT_FALSE(exchange.saw_reply());
  EXPECT_EQ(exchange.delivery(), Delivery::in_doubt);
  EXPECT_EQ(exchange.due(), 1U);
  EXPECT_TRUE(exchange.saw_reply());
  EXPECT_EQ(exchange.delivery(), Delivery::answered);
}
